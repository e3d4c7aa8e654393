#!/bin/sh
# Save and publish the flow, serve it, and ask it; arguments are the question.
set -e
here=$(dirname "$0")
port=${PLANWAVE_PORT:-8000}
planwave flow save printers "$here/printers.json"
planwave flow publish printers --model
planwave serve --port "$port" &
service=$!
trap 'kill $service' EXIT
PLANWAVE_V1="http://127.0.0.1:$port/v1" QUESTION="$*" python "$here/ask.py"
