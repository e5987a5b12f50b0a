"""Needs confluent-kafka: pip install confluent-kafka"""

import sqlite3

import trio
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from trio_asyncio_io import ExponentialBackoff, ordered_wait, transient

TOPIC, PARTITIONS = "events", 2


async def messages(consumer):
    while True:
        for message in await trio.to_thread.run_sync(consumer.consume, 100, 0.1):
            if message.error():
                raise KafkaException(message.error())
            yield message


async def look_up(message):  # call your service here
    await trio.sleep(0.01)
    return message, message.value().decode().upper()


async def job(consumer, database, stop_after):
    start = dict(database.execute("select partition, next from offsets"))
    consumer.assign(
        [TopicPartition(TOPIC, p, start.get(p, 0)) for p in range(PARTITIONS)]
    )
    retry = ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient)
    async with ordered_wait(
        messages(consumer), look_up, capacity=50, timeout=10.0, retry=retry
    ) as results:
        for _ in range(stop_after):  # your job: `async for message, found in results`
            message, found = await results.receive()
            partition, offset = message.partition(), message.offset()
            with database:  # one transaction: the result, and the offset behind it
                row = (partition, offset, found)
                database.execute("insert into results values (?, ?, ?)", row)
                row = (partition, offset + 1)
                database.execute("insert or replace into offsets values (?, ?)", row)


def run(servers, database, stop_after):
    options = {"bootstrap.servers": servers, "group.id": "enrich"}
    consumer = Consumer(options | {"enable.auto.commit": False})
    try:
        trio.run(job, consumer, database, stop_after)
    finally:
        consumer.close()


def main():
    broker = Producer({"test.mock.num.brokers": 1, "log_level": 0})  # a stand-in
    [address] = broker.list_topics(timeout=10).brokers.values()
    for number in range(20):
        broker.produce(TOPIC, f"event {number}", partition=number % PARTITIONS)
    broker.flush()

    database = sqlite3.connect(":memory:")  # yours is a file, or a server
    database.execute("create table results (partition, offset, found)")
    database.execute("create table offsets (partition primary key, next)")
    for stop_after in (7, 13):  # two runs
        run(f"{address.host}:{address.port}", database, stop_after)
        print(database.execute("select count(*) from results").fetchone()[0], "results")
    distinct = "select count(distinct found) from results"
    print(database.execute(distinct).fetchone()[0], "are distinct")


if __name__ == "__main__":
    main()
