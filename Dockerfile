# One image for workers, feeder and Flower; the command says which.
#
# The base is a tag, so that a rebuild brings its security fixes. For a build that can be repeated to the byte, pin it:
#   docker buildx imagetools inspect python:3.12-slim-bookworm --format '{{.Manifest.Digest}}'
#   docker build --build-arg PYTHON_IMAGE=python:3.12-slim-bookworm@sha256:… -t parley:0.1.0 .
ARG PYTHON_IMAGE=python:3.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY requirements.lock requirements-build.lock ./
# Nothing is installed that the locks do not name, byte for byte, and nothing is compiled.
RUN python -m venv /opt/parley \
    && /opt/parley/bin/pip install --require-hashes --only-binary :all: -r requirements.lock \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes --only-binary :all: -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY engines engines
COPY results results
COPY conversations conversations
COPY jobs jobs
COPY workers workers
COPY producer producer
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/parley/bin/pip install --no-index --no-deps /wheels/*.whl

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="parley" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/parley /opt/parley
COPY examples /app/examples
# /app is where your own Python tools go: FROM parley, COPY your_tools /app/your_tools
ENV PATH=/opt/parley/bin:$PATH PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
USER 10001:10001
STOPSIGNAL SIGTERM
CMD ["celery", "-A", "workers.app", "worker", "-Q", "conversations", "-c", "500", "-n", "conversations@%h", \
     "--without-gossip", "--without-mingle"]
