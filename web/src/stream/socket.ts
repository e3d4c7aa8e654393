import { ApiError, pageAddress } from "@/api/http";
import type { SocketMessage } from "@/api/types";
import { readJson } from "@/json";
import type { TransportContext } from "@/stream/connection";

/** Close codes with which the service refuses, with the HTTP status that means the same. */
const REFUSED: Readonly<Record<number, number>> = { 4401: 401, 4403: 403, 4404: 404, 1008: 422 };
const NORMAL = 1000;

/** Read the events of a run by a WebSocket. */
export function readBySocket(context: TransportContext): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(addressOf(context));
    const parts: string[] = [];
    let lastMessage = Date.now();
    const watchdog = setInterval(() => {
      if (Date.now() - lastMessage > 2.5 * context.options.pingMs) end();
      else if (socket.readyState === WebSocket.OPEN) socket.send('{"op":"ping"}');
    }, context.options.pingMs);

    function end(error?: ApiError): void {
      clearInterval(watchdog);
      context.signal.removeEventListener("abort", stop);
      socket.onopen = socket.onmessage = socket.onclose = null;
      // A socket that is closed while it connects reports an error; it needs no handling.
      socket.onerror = () => {};
      socket.close(NORMAL);
      if (error === undefined) resolve();
      else reject(error);
    }
    const stop = () => end();
    context.signal.addEventListener("abort", stop);
    if (context.signal.aborted) return end();

    socket.onopen = () => context.onOpen();
    socket.onerror = () => {}; // a close follows
    socket.onclose = ({ code, reason }) => end(refusal(code, reason));
    socket.onmessage = ({ data }) => {
      lastMessage = Date.now();
      context.onContact();
      const message = whole(readJson(data), parts);
      if (message !== null && !deliver(message, context)) end();
    };
  });
}

function addressOf({ executionId, cursor }: TransportContext): URL {
  const address = pageAddress(`ws/${executionId}`);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.searchParams.set("mode", "events");
  address.searchParams.set("after", String(cursor()));
  return address;
}

/** Return a message once all its parts are here, null before. */
function whole(message: SocketMessage, parts: string[]): SocketMessage | null {
  if (Array.isArray(message) || message.type !== "part") return message;
  parts.push(message.text);
  if (message.part < message.of) return null;
  return readJson(parts.splice(0).join(""));
}

/** Return whether more is wanted. */
function deliver(message: SocketMessage, context: TransportContext): boolean {
  if (Array.isArray(message)) return context.onEvents(message);
  if (message.type === "snapshot") context.onSnapshot(message);
  return message.type !== "server_draining";
}

/** Return the error of a close code with which the service refuses, undefined for others. */
export function refusal(code: number, reason: string): ApiError | undefined {
  const status = REFUSED[code];
  if (status === undefined) return undefined;
  const [, name = "refused", sentence = reason] = /^([a-z-]+): (.*)$/s.exec(reason) ?? [];
  return new ApiError(name, sentence || "The service refuses the connection.", status);
}
