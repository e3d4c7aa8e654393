"""Ask the flow through OpenAI's client, which waits for the service by its retries."""

import os

import openai

client = openai.OpenAI(base_url=os.environ["PLANWAVE_V1"], api_key="unused", max_retries=8)
messages = [{"role": "user", "content": os.environ["QUESTION"]}]
for chunk in client.chat.completions.create(model="printers", messages=messages, stream=True):
    print(chunk.choices[0].delta.content or "", end="")
