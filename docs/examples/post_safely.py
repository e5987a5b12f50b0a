import httpx
import trio

from trio_asyncio_io import AsyncFunction, ExponentialBackoff, keyed_wait, transient
from udfs import idempotency_key
from udfs.http import client

paid = {}  # of the stand-in for a payment service: idempotency key -> amount


async def service(request):
    key = request.headers["idempotency-key"]
    if key in paid:
        return httpx.Response(200, json={"paid": key})
    paid[key] = request.content
    return httpx.Response(503)  # it has paid, but the response does not say so


class Pay(AsyncFunction):
    async def open(self):
        stand_in = httpx.MockTransport(service)
        self.http = client(base_url="http://payments", transport=stand_in)

    async def invoke(self, payment):  # once per attempt
        number, account, amount = payment
        response = await self.http.post(
            "/payments",
            json={"account": account, "amount": amount},
            headers={"idempotency-key": idempotency_key("payment", number)},
        )
        return response.raise_for_status().json()["paid"]

    async def close(self):
        await self.http.aclose()


async def main():
    payments = [(1, "ann", 10), (2, "bob", 20), (3, "ann", 30)]
    retry = ExponentialBackoff(3, initial=0.01, maximum=1.0, retry_on=transient)
    async with keyed_wait(
        payments, Pay(), key=lambda payment: payment[1], timeout=30.0, retry=retry
    ) as results:
        print(sorted([result async for result in results]))
        print(results.statistics().retried, "retried,", len(paid), "paid")


if __name__ == "__main__":
    trio.run(main)
