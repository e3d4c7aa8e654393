"""Where commands plan and run: the ``Backend`` port, in this process and over HTTP."""
