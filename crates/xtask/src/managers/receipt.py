"""What a receipt says. usage: receipt.py hosts|refused|programs FILE

`hosts` are the names that flows went to, `refused` the names that were refused, a line each, sorted;
`programs` every program with its arguments.
"""
import json, sys

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
else:
    for record in of("exec-attempt"):
        print(*record["argv"])
