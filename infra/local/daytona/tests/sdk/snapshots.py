# Daytona's own SDK for Python walks through snapshots: it makes one and a sandbox of it, and a sandbox of one that Bobbin's
# client has made. Given on standard input: api, key, source (a sandbox's name), theirs (a snapshot's name of Bobbin's), ours
# (one that is not there yet). Told on standard output: what it found, as JSON.
import json
import sys

from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaConfig, DaytonaError

given = json.load(sys.stdin)
daytona = Daytona(DaytonaConfig(api_key=given["key"], api_url=given["api"], target="us"))
found = {}

source = daytona.get(given["source"])
source.create_snapshot(given["ours"])
found["back"] = source.state.value
kept = daytona.snapshot.get(given["ours"])
found["ours"] = kept.state.value
found["listed"] = sorted(
    one.name for one in daytona.snapshot.list(limit=50).items if one.name in (given["ours"], given["theirs"])
)

begun = daytona.create(
    CreateSandboxFromSnapshotParams(name="of-theirs", snapshot=given["theirs"], auto_stop_interval=0)
)
found["file"] = begun.process.exec("cat project/kept.txt").result
begun.delete()

try:
    daytona.create(CreateSandboxFromSnapshotParams(name="of-none", snapshot="nobody-made-it"))
except DaytonaError as error:
    found["none"] = str(error)

json.dump(found, sys.stdout)
