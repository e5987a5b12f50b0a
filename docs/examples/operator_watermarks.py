from trio_asyncio_io import assign_watermarks


def main():
    events = [{"at": 10}, {"at": 12}, {"at": 11}, {"at": 20}]
    elements = assign_watermarks(
        events, timestamp=lambda event: event["at"], max_out_of_orderness=5
    )
    for element in elements:
        print(element)


if __name__ == "__main__":
    main()
