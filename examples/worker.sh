#!/usr/bin/env bash
# A worker for `mulligan serve`, with bash, curl and jq. Its jobs fetch `payload.url`.
# Run it: MULLIGAN_URL=http://127.0.0.1:8833 bash examples/worker.sh   (and MULLIGAN_TOKEN, where the server has tokens)
url=${MULLIGAN_URL:-http://127.0.0.1:8833}
headers=$(mktemp) && trap 'rm -f "$headers"' EXIT

# Every call is safe to repeat, so it is sent until the server has answered. 4xx answers are final: 409 is a lost lease.
# The token goes through standard input: arguments are visible to everyone who lists processes.
call() {
  until printf 'header = "authorization: Bearer %s"\n' "${MULLIGAN_TOKEN:-none}" |
    curl -sS --retry 20 --retry-connrefused --retry-delay 1 --max-time 90 -K - \
      -H 'content-type: application/json' --data-binary "$2" "$url$1"; do sleep 0.5; done
}

claim=$(jq -nc --arg worker "bash-$$" --arg lease "${MULLIGAN_LEASE:-30s}" \
  '{worker: $worker, names: ["page.fetch"], lease: $lease, wait: "20s"}')

while true; do
  call /api/v1/claim "$claim" | jq -c '.jobs[]?' | while read -r job; do
    lease=$(jq -r .lease <<<"$job")
    page=$(jq -r .payload.url <<<"$job")
    # Renews the lease for as long as the page takes.
    (while sleep 5; do call /api/v1/heartbeat "$(jq -nc --arg lease "$lease" '{lease: $lease}')" >/dev/null; done) & beat=$!
    status=$(curl -sS -o /dev/null -D "$headers" -w '%{http_code}' "$page") || status=0
    after=$(sed -n 's/^retry-after: *\([^\r]*\).*/\1/ip' "$headers")
    kill "$beat" 2>/dev/null
    # Say what happened; the server decides what follows.
    outcome=$(jq -nc --arg lease "$lease" --argjson status "$status" --arg after "$after" '
      {lease: $lease} + if $status >= 200 and $status < 300 then {outcome: "ack", result: {status: $status}}
      else {outcome: "nack", error: ({name: "FetchError", message: "HTTP \($status)"}
        + if $status > 0 then {status: $status} else {code: "ECONNREFUSED"} end
        + if $after == "" then {} else {retryAfter: $after} end)} end')
    echo "$(jq -r .id <<<"$job") $status $(call /api/v1/settle "$outcome")"
  done
done
