"""The pool, poll by poll: from a round of answers to the facts that are accounted and explained.

In: answers, and what was seen before.  Out: facts, reasons of idle jobs, answers to questions.
Never here: a write to the ledger.
"""
