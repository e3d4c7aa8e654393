"""The embedded model: which models there are, their download, what the machine can run, and the server process. Model calls themselves live in `providers/client`."""
