# Image for KubeRay and Slurm (docs/scale.md): Leporello with Ray and S3, Python 3.11.
# docker build -t leporello . && docker run leporello list
FROM python:3.11-slim

ENV OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE PIP_NO_CACHE_DIR=1
WORKDIR /opt/leporello

# Versions first, so that a change of the code does not install everything again.
COPY constraints.txt pyproject.toml README.md LICENSE pipelines.yaml ./
COPY chunkers chunkers
COPY enrichers enrichers
COPY combiners combiners
COPY leporello leporello
COPY readers readers
COPY retrievers retrievers
RUN pip install -c constraints.txt ".[local,ray,s3]"

ENTRYPOINT ["leporello"]
