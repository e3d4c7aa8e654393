"""Published flows as models of the OpenAI API: chat completions and responses.

A request becomes a ``ChatTurn`` (``chat_request.py``, ``responses_request.py``), which starts an execution
(``published_models.py``). Its events become the pieces of one answer (``answer.py``), and these the objects of
one of the two protocols (``chat_format.py``, ``responses_format.py``).
"""
