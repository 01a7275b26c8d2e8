"""What a receipt says. usage: receipt.py hosts|refused|waited|programs FILE

`hosts` are the names that flows went to, `refused` the names and destinations that were refused;
`waited` are the milliseconds from the first refusal to the run's end; `programs` is every program
with its arguments.
"""
import datetime, json, sys

records = json.load(open(sys.argv[2]))["records"]


def of(kind):
    return [record for record in records if record["kind"] == kind]


if sys.argv[1] == "hosts":
    names = {name for record in of("flow-start") for name in record["names"]}
    # A flow that was let out and never named anybody is none of these.
    named = {record["named"] for record in of("flow-end") if "named" in record}
    assert named <= names, (named, names)
    print("\n".join(sorted(names)))
elif sys.argv[1] == "refused":
    print("\n".join(sorted({record["name"] for record in of("refused-name")})))
    for kind in ("refused-address", "refused-flow"):
        for record in of(kind):
            print(record.get("address"), record.get("port"), record.get("reason", ""))
elif sys.argv[1] == "waited":
    first, end = [datetime.datetime.fromisoformat(of(kind)[0]["at"].replace("Z", "+00:00"))
                  for kind in ("refused-name", "run-end")]
    print(round((end - first).total_seconds() * 1000))
else:
    for record in of("exec-attempt"):
        print(*record["argv"])
