"""The event engine.

To be read in this order: ``role`` lays a program flat over its rounds; ``cost`` says what its ops take alone;
``system`` lays jobs on a topology; ``scene`` says what is played, folded or full; ``sharing`` has the rates on shared
resources and ``strands`` what is one event; ``loop`` plays a scene; ``engine.py`` has the verbs; ``record`` reads off
what a run leaves behind; and ``simulate.py`` does one after the other. ``stepwise.py`` is an engine of its own, slow
and simple: the reference of collectives.
"""
