import { call } from "@/api/http";
import type { ExecutionEvent, StoredEventsResponse } from "@/api/types";
import type { TransportContext } from "@/stream/connection";

/** Polls after which a stream is tried again. */
const POLLS = 6;

/** Read the stored events of a run by asking for them again and again; streamed text is not there. */
export async function readByPolling(context: TransportContext): Promise<void> {
  const { executionId, cursor, signal, options } = context;
  for (let poll = 0; poll < POLLS && !signal.aborted; ) {
    const answer = (await call("streamEvents", {
      path: { execution_id: executionId },
      query: { after: cursor(), format: "json" },
      signal,
    })) as StoredEventsResponse;
    if (poll === 0) context.onOpen();
    context.onContact();
    if (!context.onEvents(answer.events as ExecutionEvent[])) return;
    if (answer.events.length > 0 && poll === 0) continue; // there may be a next page
    poll += 1;
    await wait(options.pollMs, signal);
  }
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
