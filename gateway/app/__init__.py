"""The processes of a running gateway and what they are made of.

``supervisor`` starts ``control_main`` (with ``rollout_parts``) and the ``worker_main``s as subprocesses, restarts
what dies (``children``) and stops them in order; ``addresses`` reserves the ports, ``state_dir`` the directory,
``descriptors`` raises the limit of files, ``logs`` sets up logging for each process, ``secrets`` reads what a policy
refers to, ``compiled`` tells what the request path runs as. Only this layer reads clocks, signals and the
environment, and hands them down.
"""
