#!/usr/bin/env bash
# Leader election with a Lease, new in version 37 of the Python client of Kubernetes (LeaseLock of the package kubernetes 37.0.2), takes a Lease that another
# process holds. It writes its own duration to `leaseDurationSeconds`, but does not wait for the one that is there: a candidate with lease_duration 3 takes a
# Lease of 60 seconds within 10, and one with 30 does not take a Lease of 2 seconds within 10 that nobody renews. A Lease without `acquireTime`, which is
# optional, it takes at once, though it was renewed just now. `leaseTransitions` stays as it was when the holder changes.
#
# The reference of the Lease API says that `leaseDurationSeconds` is how long candidates have to wait before they take a Lease by force, counted from the
# last renewal that they saw, and that `leaseTransitions` counts the changes of the holder. client-go 0.37.2 does both, and the source of LeaseLock says that
# a Lease is shared with other clients. So there are two leaders until the old one gives up: in an update that shortens the duration, while the old
# and the new Pod run, or beside a program in another language. What helps is one duration for all candidates, and to write `acquireTime` always.
#
# `kubernetes.aio` of the same package has a LeaseLock of its own, as new, with the same rules (seen too). It writes the local time as if it were UTC: with
# a time zone five hours west of it, `renewTime` is five hours old when it is written. That of the other LeaseLock is not.
#
# This runs both against a server on the loopback interface that stores one Lease as a kube-apiserver does. Needs Python with venv and PyPI, no cluster.
# Seen, 2026-11-30:
#
#	held by a for 60 s, candidate b with 3 s: held by b within 10 s, transitions 4 -> 4
#	held by a for 60 s, no acquireTime, candidate b with 30 s: held by b within 10 s, transitions 4 -> 4
#	held by a for 60 s, candidate b with 30 s: held by a after 10 s, transitions 4 -> 4
#	held by a for 2 s, candidate b with 30 s: held by a after 10 s, transitions 4 -> 4
#	renewed 5 hours west of UTC by LeaseLock: 0 hours ago
#	renewed 5 hours west of UTC by LeaseLock of kubernetes.aio: 5 hours ago
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check kubernetes==37.0.2

cat > election.py <<'PYTHON'
import asyncio
import json
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kubernetes import aio, client
from kubernetes.aio.leaderelection.electionconfig import Config as AioConfig
from kubernetes.aio.leaderelection.leaderelection import LeaderElection as AioLeaderElection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock as AioLeaseLock
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock


class API(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, code, value):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, self.server.lease)

    def do_PUT(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        version = self.server.lease["metadata"]["resourceVersion"]
        if sent["metadata"]["resourceVersion"] != version:
            self.answer(409, {"kind": "Status", "code": 409, "reason": "Conflict"})
            return
        sent["metadata"]["resourceVersion"] = str(int(version) + 1)
        self.server.lease = sent
        self.answer(200, sent)


def start(spec):
    server = ThreadingHTTPServer(("127.0.0.1", 0), API)
    server.lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "syncer", "namespace": "default", "resourceVersion": "1"},
        "spec": spec,
    }
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def elect(spec, own):
    server, url = start(spec)
    client.Configuration.set_default(client.Configuration(host=url))
    lock = LeaseLock("syncer", "default", "b")
    election = LeaderElection(Config(lock, own, own * 2 / 3, 1, lambda: None, lambda: None))
    candidate = threading.Thread(target=election.acquire, daemon=True)
    candidate.start()
    candidate.join(10)
    return server.lease["spec"], "after" if candidate.is_alive() else "within"


def compete(seconds, own, without=None):
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    held = {"holderIdentity": "a", "leaseDurationSeconds": seconds, "acquireTime": now, "renewTime": now, "leaseTransitions": 4}
    held.pop(without, None)
    found, when = elect(held, own)
    what = f"held by a for {seconds} s" + (f", no {without}" if without else "")
    then = f"held by {found['holderIdentity']} {when} 10 s, transitions 4 -> {found['leaseTransitions']}"
    print(f"{what}, candidate b with {own} s: {then}")


async def nothing():
    pass


async def elect_aio(spec, own):
    server, url = start(spec)
    async with aio.client.ApiClient(aio.client.Configuration(host=url)) as api:
        lock = AioLeaseLock("syncer", "default", "b", api)
        await AioLeaderElection(AioConfig(lock, own, own * 2 / 3, 1, nothing, nothing)).acquire()
    return server.lease["spec"]


def hours_ago(spec):
    return round((datetime.now(timezone.utc) - datetime.fromisoformat(spec["renewTime"])).total_seconds() / 3600)


compete(60, 3)
compete(60, 30, without="acquireTime")
compete(60, 30)
compete(2, 30)
print(f"renewed 5 hours west of UTC by LeaseLock: {hours_ago(elect({}, 30)[0])} hours ago")
print(f"renewed 5 hours west of UTC by LeaseLock of kubernetes.aio: {hours_ago(asyncio.run(elect_aio({}, 30)))} hours ago")
PYTHON
seen=$(TZ=WEST+5 python/bin/python election.py)
echo "$seen"
[ "$seen" = 'held by a for 60 s, candidate b with 3 s: held by b within 10 s, transitions 4 -> 4
held by a for 60 s, no acquireTime, candidate b with 30 s: held by b within 10 s, transitions 4 -> 4
held by a for 60 s, candidate b with 30 s: held by a after 10 s, transitions 4 -> 4
held by a for 2 s, candidate b with 30 s: held by a after 10 s, transitions 4 -> 4
renewed 5 hours west of UTC by LeaseLock: 0 hours ago
renewed 5 hours west of UTC by LeaseLock of kubernetes.aio: 5 hours ago' ] || {
  echo 'this has changed' >&2
  exit 1
}
