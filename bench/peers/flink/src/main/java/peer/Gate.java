package peer;

import java.util.Arrays;

/**
 * Which epochs sources may hand over, and which all sinks have seen the end of.
 *
 * <p>Sources, sinks and the clock are threads of one process, so this is a lock. A sink has an epoch behind it when
 * it has got the watermark that ends it.
 */
final class Gate {
  private final Object lock = new Object();
  private final long[] watermarks;
  /** How many sinks there are: as many as the operator before them has subtasks, and one behind a LIMIT. */
  private int sinks = Integer.MAX_VALUE;

  private int allowed = -1;
  private int waiting;
  private final long[] reached;
  private int opened;
  private Throwable failure;

  Gate(Spec spec) {
    watermarks = spec.watermarks;
    reached = new long[spec.parallelism];
    Arrays.fill(reached, Long.MIN_VALUE);
  }

  /** A source waits until it may hand over an epoch. */
  void await(int epoch) throws InterruptedException {
    synchronized (lock) {
      waiting++;
      lock.notifyAll();
      while (allowed < epoch) {
        lock.wait();
      }
      waiting--;
    }
  }

  /** One of so many sinks runs. */
  void opened(int count) {
    synchronized (lock) {
      sinks = count;
      opened++;
      lock.notifyAll();
    }
  }

  void reached(int sink, long watermark) {
    synchronized (lock) {
      reached[sink] = watermark;
      lock.notifyAll();
    }
  }

  /** The dataflow has failed: whoever waits is to know. */
  void failed(Throwable error) {
    synchronized (lock) {
      failure = error;
      lock.notifyAll();
    }
  }

  /** Wait until all sources and sinks run. */
  void awaitRunning(int sources) throws Exception {
    synchronized (lock) {
      while (waiting < sources || opened < sinks) {
        waitOrFail();
      }
    }
  }

  void allow(int epoch) {
    synchronized (lock) {
      allowed = epoch;
      lock.notifyAll();
    }
  }

  /** Wait until all sinks have seen the end of an epoch. */
  void awaitEnd(int epoch) throws Exception {
    synchronized (lock) {
      while (Arrays.stream(reached, 0, sinks).anyMatch(each -> each < watermarks[epoch])) {
        waitOrFail();
      }
    }
  }

  private void waitOrFail() throws Exception {
    if (failure != null) {
      throw new IllegalStateException("the dataflow has failed", failure);
    }
    lock.wait();
  }
}
