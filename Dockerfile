# syntax=docker/dockerfile:1
# The gateway, and with another command the simulated runtime. Built from the locked versions in deploy/, hashes required.
#
#   docker build -t quantgate:local .
#   docker run -p 8080:8080 -v "$PWD/routing_policies:/etc/quantgate/policies:ro" -e ACME_KEY=... quantgate:local

# Release builds give a digest: --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:...
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /build
COPY deploy/requirements.lock deploy/build.lock ./
RUN python -m venv /opt/quantgate \
 && /opt/quantgate/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r build.lock
COPY pyproject.toml setup.py README.md LICENSE ./
COPY gateway gateway
COPY routing_policies routing_policies
ENV QUANTGATE_COMPILE=1 \
    CC="/opt/build/bin/python -m ziglang cc" \
    LDSHARED="/opt/build/bin/python -m ziglang cc -shared"
RUN /opt/build/bin/pip wheel --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist . \
 && /opt/quantgate/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps dist/*.whl \
 && /opt/quantgate/bin/pip uninstall --yes --quiet setuptools pip \
 && /opt/quantgate/bin/quantgate --version

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="quantgate" \
      org.opencontainers.image.description="Production entrypoint for LLM serving pools of different precision" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --system --gid 10001 quantgate \
 && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/quantgate quantgate \
 && install -d -o 10001 -g 10001 -m 0700 /var/lib/quantgate \
 && install -d -m 0755 /etc/quantgate/policies
COPY --from=build /opt/quantgate /opt/quantgate
ENV PATH=/opt/quantgate/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /var/lib/quantgate
USER 10001:10001
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:9090/readyz', timeout=3)"]
ENTRYPOINT ["quantgate"]
CMD ["serve", "--config", "/etc/quantgate/policies", "--listen", "0.0.0.0:8080", "--admin", "0.0.0.0:9090", "--state-dir", "/var/lib/quantgate"]
