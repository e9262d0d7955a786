#!/usr/bin/python3
"""Stands in for certbot: an authority of the test's own asks for the challenge, signs, and this machine believes it."""

import argparse
import shutil
import subprocess
from pathlib import Path
from urllib.request import urlopen

CONTENT = "the answer to the challenge"

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["certonly"])
for flag in ("--non-interactive", "--agree-tos", "--webroot"):
    parser.add_argument(flag, action="store_true", required=True)
for option in ("--email", "--domain", "--cert-name", "--webroot-path", "--deploy-hook"):
    parser.add_argument(option, required=True)
given = parser.parse_args()

challenge = Path(given.webroot_path) / ".well-known/acme-challenge/token"
challenge.parent.mkdir(parents=True, exist_ok=True)
challenge.write_text(CONTENT)
with urlopen(f"http://{given.domain}/.well-known/acme-challenge/token") as answer:
    assert answer.read().decode() == CONTENT

live = Path("/etc/letsencrypt/live") / given.cert_name
live.mkdir(parents=True, exist_ok=True)
made = ["-keyout", live / "privkey.pem", "-out", live / "fullchain.pem"]
names = ["-subj", f"/CN={given.domain}", "-addext", f"subjectAltName=DNS:{given.domain}"]
uses = ["-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
subprocess.run(["openssl", "req", "-x509", "-days", "90", *key, *names, *uses, *made], check=True, capture_output=True)
shutil.copy(live / "fullchain.pem", "/usr/local/share/ca-certificates/test.crt")
subprocess.run(["update-ca-certificates"], check=True, capture_output=True)
subprocess.run(given.deploy_hook, shell=True, check=True)  # noqa: S602 - as certbot runs it
