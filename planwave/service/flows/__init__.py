"""Flows: saving, changing, deleting and looking up graphs that are stored under a name. Their executions live in `service/executions`."""
