"""Where facts come from: the only importers of htcondor2 and classad2.

Each file is one source: what it asks for, and how an answer becomes facts.  Queries run in child
processes (:mod:`gwmond.sources.child`), because HTCondor's bindings hold Python's global lock
during network calls and some of their calls never return.

In: a question, a deadline.  Out: facts with their source, and problems.
Never here: what follows from facts.
"""
