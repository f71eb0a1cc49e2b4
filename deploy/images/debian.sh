#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Makes a Debian 12 image from Debian's packages, without a registry: a stand-in for
# debian:12, ubuntu:24.04 or python:3-slim where none can be reached. See README.md.
#
#   debian.sh          make tidemill-test/debian:12, unless it is there already
#   debian.sh --tar    write the root file system to standard output as tar
#
# Needs mmdebstrap, and as another user than root a kernel that lets users make user
# namespaces. DEBIAN_MIRROR names the mirror.
set -euo pipefail

repository=tidemill-test/debian
suite=bookworm
mirror="${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
# What tasks take for granted of a base image, and what their graders run.
packages=bash,ca-certificates,coreutils,curl,procps,python3,python3-pytest,python-is-python3

make_tar() {
  if ! command -v mmdebstrap >/dev/null; then
    echo "debian.sh: mmdebstrap is missing: install the package mmdebstrap" >&2
    exit 1
  fi
  # Where users are made, their ids are those of tidemill-test/busybox.
  mmdebstrap --quiet --variant=minbase --include="$packages" \
    --aptopt='Acquire::Retries "3"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='chroot "$1" useradd --create-home --uid 1000 --shell /bin/bash agent' \
    --customize-hook='chroot "$1" useradd --create-home --uid 1001 --shell /bin/bash other' \
    --customize-hook='rm -f "$1/etc/resolv.conf" "$1/etc/hostname"' \
    "$suite" - "$mirror"
}

case "${1:-}" in
  --tar)
    make_tar
    ;;
  "")
    # The image says from which script it was made.
    digest="$(sha256sum "$0" | cut -d' ' -f1)"
    label=dev.tidemill.test
    have="$(docker image inspect --format "{{index .Config.Labels \"$label\"}}" "$repository:12" 2>/dev/null || true)"
    if [ "$have" = "$digest" ]; then
      echo "$repository:12 is there" >&2
      exit 0
    fi
    make_tar | docker import --change "LABEL $label=$digest" --change 'CMD ["bash"]' - "$repository:12"
    ;;
  *)
    sed -n '4,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
