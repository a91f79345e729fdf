#!/usr/bin/env python3
"""A worker for `mulligan serve`, with nothing but Python. Its jobs fetch `payload["url"]`.
Run it: MULLIGAN_URL=http://127.0.0.1:8833 python3 examples/worker.py   (and MULLIGAN_TOKEN, where the server has tokens)"""
import json, os, threading, time, urllib.error, urllib.request

URL, TOKEN = os.environ.get("MULLIGAN_URL", "http://127.0.0.1:8833"), os.environ.get("MULLIGAN_TOKEN")
ME = {"worker": f"python-{os.getpid()}", "names": ["page.fetch"], "lease": os.environ.get("MULLIGAN_LEASE", "30s")}

def call(path, body):  # every call is safe to repeat, so it is sent until the server has answered
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {TOKEN}"} if TOKEN else {})}
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(URL + path, json.dumps(body).encode(), headers)) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                return print(error.code, error.read().decode())  # 409: the lease was lost, and another worker has the job
        except OSError as error:
            print("no answer:", error)
        time.sleep(0.5)

def handle(job):
    with urllib.request.urlopen(job["payload"]["url"]) as page:
        return {"bytes": len(page.read())}

def run(job):
    done = threading.Event()
    beat = lambda: [call("/api/v1/heartbeat", {"lease": job["lease"]}) for _ in iter(lambda: done.wait(5), True)]
    threading.Thread(target=beat, daemon=True).start()
    try:
        outcome = {"outcome": "ack", "result": handle(job)}
    except Exception as error:  # say what happened; the server decides what follows
        told = {"status": getattr(error, "code", None), "retryAfter": getattr(error, "headers", {}).get("retry-after")}
        told = {"name": type(error).__name__, "message": str(error), **{key: value for key, value in told.items() if value}}
        outcome = {"outcome": "nack", "error": told}
    done.set()
    print(job["id"], outcome, call("/api/v1/settle", {"lease": job["lease"], **outcome}), flush=True)

while True:
    for job in (call("/api/v1/claim", {**ME, "wait": "20s"}) or {"jobs": []})["jobs"]:
        run(job)
