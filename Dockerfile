# planwave as a small image: built in one stage, run in another, as a user of its own.
#   docker build -t planwave .
#   docker run --rm -e PLANWAVE_TOKEN=… -p 127.0.0.1:8000:8000 -v planwave:/var/lib/planwave planwave

# Name images by digest, or take them from a registry of your own, with --build-arg.
ARG NODE_IMAGE=node:22-slim
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${NODE_IMAGE} AS node

FROM ${PYTHON_IMAGE} AS build
# LOCK=requirements-local.lock adds the embedded model's runtime (AVX2, some 2.5 GB of memory),
# LOCK=requirements-scale.lock what several processes need: PostgreSQL and Temporal.
ARG LOCK=requirements-image.lock
WORKDIR /src
RUN ["python", "-m", "venv", "/opt/planwave"]
# Node builds the web UI while the package is built; the image that runs has none.
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
RUN ["ln", "-s", "../lib/node_modules/npm/bin/npm-cli.js", "/usr/local/bin/npm"]
COPY pyproject.toml requirements-image.lock requirements-local.lock requirements-scale.lock README.md LICENSE hatch_build.py ./
COPY tools/web.py tools/
COPY web web
COPY planwave planwave
# Only files whose hashes are in the lock; planwave itself is built with the hatchling among them.
RUN /opt/planwave/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r "${LOCK}" \
    && /opt/planwave/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation .

FROM ${PYTHON_IMAGE}
RUN useradd --uid 10001 --user-group --shell /usr/sbin/nologin --home-dir /var/lib/planwave --create-home planwave
COPY --from=build /opt/planwave /opt/planwave
ENV PATH=/opt/planwave/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PLANWAVE_HOST=0.0.0.0 \
    PLANWAVE_PORT=8000 \
    PLANWAVE_LOG_FORMAT=json \
    PLANWAVE_STORAGE_DIR=/var/lib/planwave/storage \
    PLANWAVE_MODEL_DIR=/var/lib/planwave/models
USER planwave
WORKDIR /var/lib/planwave
VOLUME /var/lib/planwave
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, sys; from http.client import HTTPConnection as C; c = C('127.0.0.1', int(os.environ['PLANWAVE_PORT']), timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
CMD ["planwave", "serve"]
