#!/usr/bin/env python3
"""Signatures of 1,000 requests to S3 by botocore, to standard output.

A line each: method, path, query, region, access key, secret key, payload, then headers NAME=VALUE (those that are signed, but for
what follows from the rest) joined by 0x1f, and the value of Authorization.
"""
import datetime
import random
import sys
from unittest import mock
from urllib.parse import quote

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

CHARS = "abcXYZ019-._~ !'()*+,;=:@$&%?#[]{}<>|^`\"\\äß日本語🙂/"


def text(r, least, most):
    return "".join(r.choice(CHARS) for _ in range(r.randint(least, most)))


def record(r, f):
    method = r.choice(["GET", "PUT", "POST", "DELETE", "HEAD"])
    region = r.choice(["us-east-1", "eu-central-1", "ap-southeast-2", "auto"])
    host = r.choice(["bucket.s3.%s.amazonaws.com" % region, "127.0.0.1:9000", "s3.example.org", "s3.example.org:443", "s3.example.org:444"])
    path = "/" + quote(text(r, 1, 40), safe="/~")
    query = "&".join(
        quote(text(r, 1, 8), safe="~") + r.choice(["", "=", "=" + quote(text(r, 0, 12), safe="~")]) for _ in range(r.choice([0, 0, 1, 2, 5]))
    )
    access, secret = "AKIA%08d" % r.randrange(10**8), "".join(r.choice(CHARS[:10] + "/+") for _ in range(40))
    token = r.choice([None, "".join(r.choice("abcdEFGH0123/+=") for _ in range(r.choice([12, 40, 90])))])
    request = AWSRequest(method=method, url="https://" + host + path + ("?" + query if query else ""), data=b"")
    if r.random() < 0.5:
        request.headers["Range"] = "bytes=%d-%d" % (r.randrange(1000), 1000 + r.randrange(1000))
    if r.random() < 0.3:
        request.headers["Content-Type"] = r.choice(["text/plain", "  application/x-odd;  a = b  "])
    if r.random() < 0.5:
        request.headers["X-Amz-Content-SHA256"] = "UNSIGNED-PAYLOAD"
        request.context["payload_signing_enabled"] = False
    else:
        request.context["payload_signing_enabled"] = True
    when = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=r.randrange(10**9))
    with mock.patch.object(botocore.auth, "get_current_datetime", lambda *a, **k: when):
        botocore.auth.S3SigV4Auth(Credentials(access, secret, token), "s3", region).add_auth(request)
    signed = request.headers["Authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    values = dict((k.lower(), v) for k, v in request.headers.items())
    values["host"] = host[:-4] if host.endswith(":443") else host
    headers = "\x1f".join("%s=%s" % (name, values[name]) for name in r.sample(signed, len(signed)))
    f.write("\t".join([method, path, query, region, access, secret, values["x-amz-content-sha256"], headers, request.headers["Authorization"]]) + "\n")


r = random.Random(4)
for _ in range(1000):
    record(r, sys.stdout)
