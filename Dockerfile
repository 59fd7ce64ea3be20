# syntax=docker/dockerfile:1
# medgrape with everything that a server and a PACS need, for a CPU: docs/how-to/docker.md.
# The base is pinned by tag. Where it matters that nobody changes it under you, pin it by digest: --build-arg PYTHON=3.11-slim-bookworm@sha256:...
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /source
COPY pyproject.toml constraints.txt hatch_build.py README.md LICENSE ./
COPY src src
COPY ui ui
# The page is built by Node.js from PyPI (hatch_build.py), which stays behind in this stage like the sources.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .
# From wheels alone: no compiler is needed, here or later. Torch for Linux comes from PyPI with gigabytes for GPUs, so its own
# index for CPUs is asked too; its "+cpu" is the newer of two equal versions. Another index, or none, may be given.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG EXTRAS=dicom,lite,text,server,postgres,pacs
RUN python -m venv --without-pip /opt/medgrape \
    && pip --python /opt/medgrape/bin/python install --no-cache-dir --only-binary :all: \
        --constraint constraints.txt --extra-index-url "${TORCH_INDEX}" \
        "medgrape[${EXTRAS}] @ file://$(echo /wheels/medgrape-*.whl)" \
    # A font under the GPL that reportlab brings along and nobody here uses.
    && rm -f /opt/medgrape/lib/python3*/site-packages/reportlab/fonts/DarkGarden*

FROM python:${PYTHON}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="medgrape" \
      org.opencontainers.image.description="Read chest X-rays with concepts that one can point at, correct and extend. Research software, not a medical device." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
# The user has no rights but to these folders; the rest of the image may be mounted read-only.
RUN groupadd --gid 10001 medgrape \
    && useradd --uid 10001 --gid medgrape --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin medgrape \
    && install --directory --owner=medgrape --group=medgrape --mode=0750 /room /readings \
    && install --directory /runs
COPY --from=build /opt/medgrape /opt/medgrape
COPY deploy/healthcheck.py /usr/local/lib/medgrape/healthcheck.py
# What libraries want to keep goes to /tmp, the only other place that can be written to.
ENV PATH=/opt/medgrape/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    MEDGRAPE_SETTINGS=/run/secrets/serve.toml
USER 10001:10001
WORKDIR /room
VOLUME ["/room", "/readings"]
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "/usr/local/lib/medgrape/healthcheck.py"]
ENTRYPOINT ["medgrape"]
CMD ["--help"]
