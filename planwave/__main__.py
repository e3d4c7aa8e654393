"""``python -m planwave``: the ``planwave`` command of this interpreter."""

from planwave.main import main

main()
