"""The processes of a running gateway and what they are made of.

``supervisor`` starts ``control_main`` and the ``worker_main``s as subprocesses, restarts what dies (``children``) and
stops them in order; ``addresses`` reserves the ports, ``state_dir`` the directory, ``logs`` sets up logging for each
process. Only this layer reads clocks, signals and the environment, and hands them down.
"""
