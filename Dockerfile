# The image of the driver: make image. Both bases are named as every registry of Debian's and Go's
# official images knows them; where none answers, hack/base-image makes them on the spot.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY . .
ARG VERSION=dev
# grpcnotrace: see hack/slim. With a vendor folder in the context, as hack/image makes one, nothing is downloaded here.
RUN --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /stowage ./cmd/driver \
 && CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /stowage-manager ./cmd/manager

FROM debian:bookworm-slim
# The programs that make, check and grow filesystems. Mounting needs none: the driver uses system calls.
# xfsprogs comes without what only xfs_scrub needs, Python and ICU: 80 MB, and their advisories.
RUN echo 'Acquire::Retries "5";' >/etc/apt/apt.conf.d/retries && apt-get update -qq \
 && apt-get install -qq -y --no-install-recommends btrfs-progs e2fsprogs libdevmapper1.02.1 libedit2 libinih1 liburcu8 \
 && cd /tmp && apt-get download -qq xfsprogs && dpkg --install --force-depends xfsprogs_*.deb \
 && rm -rf /tmp/* /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/*
COPY LICENSE /usr/share/doc/stowage/LICENSE
COPY --from=build /stowage /stowage-manager /
ARG VERSION=dev
LABEL org.opencontainers.image.title="Stowage" \
      org.opencontainers.image.description="CSI driver for local disks, NFS and cloud disks" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/stowage-csi/stowage" \
      org.opencontainers.image.version="${VERSION}"
# Mounts and loop devices are root's; the DaemonSet says which privileges the container gets.
USER 0
ENTRYPOINT ["/stowage"]
