import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.AsyncDataStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.async.ResultFuture;
import org.apache.flink.streaming.api.functions.async.RichAsyncFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * Flink's own operator: a job for each line of standard input, and a line of JSON for each job. See serving.py.
 *
 * <p>Everything runs in this process, so the counters are static. A timer's thread completes each call: at once if it has
 * no latency, which corresponds to the checkpoint of the other contenders.
 */
public final class AsyncJob {
    private static final long TIMEOUT_SECONDS = 5;
    private static final AtomicInteger RUNNING = new AtomicInteger();
    private static final AtomicInteger PEAK = new AtomicInteger();
    private static final AtomicLong CALLS = new AtomicLong();

    private static long[] latencies; // microseconds
    private static volatile boolean isLatent;
    private static volatile long warm; // System.nanoTime() from which results count
    private static volatile long end;
    private static volatile long results;

    public static void main(String[] arguments) throws Exception {
        latencies = Files.readAllLines(Path.of(arguments[0])).stream()
            .mapToLong(line -> Math.round(Double.parseDouble(line) * 1e6)).toArray();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("{\"ready\": true}");
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split(" ");
            int capacity = Integer.parseInt(words[2]);
            if (words[0].equals("checkpoint")) {
                immediate(words[1], capacity, Long.parseLong(words[3]));
            } else {
                latent(words[1], capacity, Double.parseDouble(words[3]), Double.parseDouble(words[4]));
            }
        }
        System.exit(0);
    }

    private static void immediate(String mode, int capacity, long elements) throws Exception {
        prepare(false);
        warm = end = Long.MAX_VALUE;
        long began = System.nanoTime();
        environment(mode, capacity, elements).execute();
        reply((System.nanoTime() - began) / 1e9);
    }

    private static void latent(String mode, int capacity, double warmSeconds, double seconds) throws Exception {
        prepare(true);
        warm = end = 0; // until the first call
        JobClient job = environment(mode, capacity, Long.MAX_VALUE).executeAsync();
        while (CALLS.get() == 0) {
            Thread.sleep(1);
        }
        long first = System.nanoTime();
        end = first + (long) ((warmSeconds + seconds) * 1e9);
        warm = first + (long) (warmSeconds * 1e9);
        Thread.sleep((long) ((warmSeconds + seconds) * 1e3) + 50);
        job.cancel().get();
        reply(seconds);
    }

    private static void prepare(boolean withLatency) {
        isLatent = withLatency;
        RUNNING.set(0);
        PEAK.set(0);
        CALLS.set(0);
        results = 0;
    }

    private static void reply(double seconds) {
        System.out.println(String.format(Locale.ROOT,
            "{\"wall\": %f, \"calls\": %d, \"peak\": %d, \"results\": %d}", seconds, CALLS.get(), PEAK.get(), results));
    }

    private static StreamExecutionEnvironment environment(String mode, int capacity, long elements) {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
        DataStream<Long> numbers = environment.fromSource(
            new NumberSequenceSource(0, elements - 1), WatermarkStrategy.noWatermarks(), "numbers");
        DataStream<Long> called = mode.equals("ordered")
            ? AsyncDataStream.orderedWait(numbers, new Call(), TIMEOUT_SECONDS, TimeUnit.SECONDS, capacity)
            : AsyncDataStream.unorderedWait(numbers, new Call(), TIMEOUT_SECONDS, TimeUnit.SECONDS, capacity);
        called.map(AsyncJob::count).returns(Types.LONG).sinkTo(new DiscardingSink<>());
        return environment;
    }

    private static Long count(Long number) {
        long now = System.nanoTime();
        if (now >= warm && now < end) {
            results++; // by one thread
        }
        return number;
    }

    /** A call that takes its latency, or none. */
    private static final class Call extends RichAsyncFunction<Long, Long> {
        private transient ScheduledExecutorService timer;

        @Override
        public void open(OpenContext context) {
            timer = Executors.newSingleThreadScheduledExecutor();
        }

        @Override
        public void asyncInvoke(Long number, ResultFuture<Long> future) {
            CALLS.incrementAndGet();
            int running = RUNNING.incrementAndGet();
            PEAK.accumulateAndGet(running, Math::max);
            Runnable complete = () -> {
                RUNNING.decrementAndGet();
                future.complete(List.of(number));
            };
            if (isLatent) {
                timer.schedule(complete, latencies[(int) (number % latencies.length)], TimeUnit.MICROSECONDS);
            } else {
                timer.execute(complete);
            }
        }

        @Override
        public void close() {
            if (timer != null) {
                timer.shutdownNow();
            }
        }
    }
}
