# `private-ate` in a container: docker run --rm -v "$PWD:/data" private-ate --help
FROM python:3.12-slim

COPY . /source
# EXTRAS=[formats,plots] brings readers of other files and figures.
ARG EXTRAS=[formats]
RUN pip install --no-cache-dir "/source${EXTRAS}" && rm -rf /source

RUN useradd --create-home analyst
USER analyst
WORKDIR /data
ENTRYPOINT ["private-ate"]
CMD ["--help"]
