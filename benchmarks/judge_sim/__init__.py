"""Long simulations of the judge: do the promised error rates and delays hold through the engine's own code?

``streams`` draws traffic (numpy, fixed seeds), ``drive`` feeds it to the engine's meters and series, and one module
per claim of `docs/evidence.md` (``null_runs``, ``delays``, ``fleet``, ``dispatch_order``) compares what came out with
what was promised. Nothing here computes a meter of its own. Run with ``python -m benchmarks.judge_sim [--quick]``.
"""
