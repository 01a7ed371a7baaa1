"""The negotiator as referee: verdicts on sites, held against what a real pool does (docs/truth.md).

- ``draw``: scenarios from a seeded generator;
- ``arena``: a scenario in a real pool, and the experiment with one real, empty pilot;
- ``verdicts``: what ``gwmond once`` says of the same moment;
- ``trial``: both held against each other, and the naive rule beside them; ``table``: the sums.
"""
