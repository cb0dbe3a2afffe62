"""The example of nginx's configuration, word for word, in front of a server."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import aiohttp
import pytest

from keras_transformer.kit.serving.application import Service
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.server import allowed_names, answering, listening_socket
from tests.free_ports import free_addresses

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.slow,  # another server
    pytest.mark.skipif(
        NGINX is None or shutil.which("openssl") is None,
        reason="install: apt-get install nginx openssl",
    ),
]
EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "nginx.conf"
NAME = "translate.example"
# Around the example's lines: one process, which writes into its own folder only.
FRAME = """
daemon off; master_process off; pid nginx.pid; error_log error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
{example}
}}
"""


def configured(folder, port, server_port, changed):
    """Writes the configuration and a certificate."""
    example = EXAMPLE.read_text(encoding="utf-8")
    for old, new in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/": f"{folder}/",
        "127.0.0.1:8501": f"127.0.0.1:{server_port}",
        "127.0.0.1:8502": f"127.0.0.1:{server_port}",
        **changed,
    }.items():
        assert old in example
        example = example.replace(old, new)
    (folder / "nginx.conf").write_text(FRAME.format(example=example), encoding="utf-8")
    key, certificate = f"{folder}/{NAME}.key", f"{folder}/{NAME}.pem"
    made = ["-keyout", key, "-out", certificate, "-subj", f"/CN={NAME}"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made]
    subprocess.run(command, check=True, capture_output=True)


def proxied(translator, folder, scenario, changed=None):
    """Runs `scenario(client)` against nginx in front of a server that answers local names only."""

    async def run():
        listening = listening_socket("127.0.0.1", 0)
        address = free_addresses(1)[0]
        port = address.rpartition(":")[2]
        configured(folder, port, listening.getsockname()[1], changed or {})
        service = Service(translator, Limits(), allowed_names("127.0.0.1", listening))
        command = [NGINX, "-p", str(folder), "-c", "nginx.conf"]
        async with answering(service, listening):
            nginx = await asyncio.create_subprocess_exec(*command)
            try:
                connector = aiohttp.TCPConnector(ssl=False, limit=0)
                headers = {"Host": NAME}
                async with aiohttp.ClientSession(
                    f"https://{address}", headers=headers, connector=connector
                ) as client:
                    await begun(client, nginx)
                    return await asyncio.wait_for(scenario(client), timeout=120)
            finally:
                nginx.terminate()
                await nginx.wait()

    return asyncio.run(run())


async def begun(client, nginx):
    while nginx.returncode is None:
        try:
            assert (await client.get("/healthz")).status == 200
            return
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(0.1)
    pytest.fail("nginx has ended: its configuration is wrong")


def test_a_page_of_another_name_translates_through_the_proxy(translator, tmp_path):
    async def scenario(client):
        page = await client.get("/")
        assert page.status == 200 and "Translat" in await page.text()
        own = {"Origin": f"https://{NAME}"}  # as the page's scripts send it
        answer = await client.post("/translate", json={"text": "A cat."}, headers=own)
        assert answer.status == 200
        assert (await answer.json())["translations"]
        form = aiohttp.FormData({"source": "en", "target": "de"})
        form.add_field("file", b"A cat.\n", filename="cat.txt")
        translated = await (await client.post("/translate_file", data=form)).json()
        url = translated["translatedFileUrl"]
        assert url.startswith(f"https://{NAME}/download_file/")
        file = await client.get(url.partition(NAME)[2])
        assert file.status == 200 and file.content_type == "application/octet-stream"

    proxied(translator, tmp_path, scenario)


def test_the_proxy_limits_what_a_client_may_send(translator, tmp_path):
    async def scenario(client):
        large = await client.post("/translate", data=b"x" * 400_000)
        assert large.status == 413
        answers = await asyncio.gather(*(client.get("/healthz") for _ in range(60)))
        return [answer.status for answer in answers]

    statuses = proxied(translator, tmp_path, scenario)
    assert set(statuses) == {200, 503} and statuses.count(200) >= 20


def test_programs_need_a_key_which_has_a_rate(translator, tmp_path):
    async def scenario(client):
        async def status_of(url="/translate", **headers):
            headers["Host"] = f"api.{NAME}"
            body = {"q": "A cat.", "source": "en", "target": "de"}
            return (await client.post(url, json=body, headers=headers)).status

        key = "3d1fa7c2-change-it"
        assert await status_of() == 401
        assert await status_of(**{"X-API-Key": "another"}) == 401
        assert await status_of(f"/translate?api_key={key}") == 200
        return await asyncio.gather(*(status_of(**{"X-API-Key": key}) for _ in range(60)))

    statuses = proxied(translator, tmp_path, scenario)
    assert set(statuses) == {200, 503} and statuses.count(200) >= 15


def test_metrics_stay_inside(translator, tmp_path):
    async def scenario(client):
        return (await client.get("/metrics")).status

    assert proxied(translator, tmp_path, scenario) == 403


@pytest.mark.parametrize(("allowed", "status"), [("192.0.2.0/24", 403), ("127.0.0.1", 404)])
def test_the_proxy_decides_who_may_correct(translator, tmp_path, allowed, status):
    async def scenario(client):
        correction = {"source": "A cat.", "translation": "Eine Katze."}
        answer = await client.post("/corrections", json=correction)
        assert answer.status == status
        if status == 404:  # from the server, which has no corrections
            assert "corrections" in (await answer.json())["error"]

    proxied(translator, tmp_path, scenario, {"192.0.2.0/24": allowed})
