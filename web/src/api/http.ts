import { ADDRESSES, type Operations, type Problem } from "@/api/types";
import { readJson, writeJson } from "@/json";

/** Browsers keep requests alive up to 64 kB in all; characters may take three bytes. */
const LONGEST_KEPT_ALIVE = 16_000;

export type OperationName = keyof Operations;

type PathPart<Path> = Path extends Record<string, never> ? { path?: never } : { path: Path };
type QueryPart<Query> = Query extends Record<string, never> ? { query?: never } : { query?: Query };
type BodyPart<Body> = undefined extends Body ? { body?: Body } : { body: Body };

/** What a request consists of besides its operation. */
export type RequestParts<Name extends OperationName> = PathPart<Operations[Name]["path"]> &
  QueryPart<Operations[Name]["query"]> &
  BodyPart<Operations[Name]["body"]> & {
    signal?: AbortSignal | undefined;
    /** Sent as `Idempotency-Key`: the same request again makes nothing again. */
    key?: string | undefined;
    /** Sent as `If-Match`: the hash that is to be changed. */
    ifMatch?: string | undefined;
    /** The request goes on after its page was closed, if its body is small enough. */
    outlivesPage?: boolean | undefined;
  };

/** The code of a request that got no answer. */
export const NETWORK_FAILURE = "network-failure";

/** A request that failed; `message` is a sentence for people. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** Stable; branch on it. */
  readonly code: string;
  /** The HTTP status, 0 without an answer. */
  readonly status: number;
  readonly hint: string | null;
  readonly issues: NonNullable<Problem["issues"]>;
  /** The whole answer, null where it was no problem document. */
  readonly problem: Problem | null;

  constructor(code: string, message: string, status: number, problem: Problem | null = null) {
    super(message);
    this.code = code;
    this.status = status;
    this.problem = problem;
    this.hint = problem?.hint ?? null;
    this.issues = problem?.issues ?? [];
  }
}

/** Return whether a request failed because the browser is not logged in. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

/**
 * Call an operation of the API and return its answer.
 *
 * @throws {ApiError} The service refuses it or does not answer. An abort is thrown as it is.
 */
export async function call<Name extends OperationName>(
  name: Name,
  parts: RequestParts<Name>,
): Promise<Operations[Name]["answer"]> {
  const response = await send(name, parts);
  const text = await guarded(() => response.text(), parts.signal);
  return text === "" ? undefined : readJson(text);
}

/**
 * Call an operation and return its response, unread. A request with a key is sent once more where
 * the network fails: it does nothing twice.
 *
 * @throws {ApiError} As `call`.
 */
export async function send<Name extends OperationName>(
  name: Name,
  parts: RequestParts<Name>,
): Promise<Response> {
  const { path, query, body, signal, key, ifMatch, outlivesPage } = parts as AnyParts;
  const [method] = ADDRESSES[name];
  const headers = new Headers({ Accept: "application/json" });
  if (body !== undefined) headers.set("Content-Type", "application/json");
  if (key !== undefined) headers.set("Idempotency-Key", key);
  if (ifMatch !== undefined) headers.set("If-Match", `"${ifMatch}"`);
  const request: RequestInit = { method, headers, credentials: "same-origin" };
  if (body !== undefined) request.body = writeJson(body);
  if (outlivesPage && String(request.body).length < LONGEST_KEPT_ALIVE) request.keepalive = true;
  if (signal !== undefined) request.signal = signal;
  const address = addressOf(name, path, query);
  const attempt = () => guarded(() => fetch(address, request), signal);
  const response = await (key === undefined ? attempt() : attempt().catch(again(attempt)));
  if (!response.ok) throw await errorOf(response);
  return response;
}

type AnyParts = {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal;
  key?: string;
  ifMatch?: string;
  outlivesPage?: boolean;
};

/** Return the address of an operation, below the path that the page is served under. */
export function addressOf(
  name: OperationName,
  path: Record<string, string | number> = {},
  query: Record<string, unknown> = {},
): URL {
  const template = ADDRESSES[name][1];
  const filled = template.replace(/\{(\w+)\}/g, (_, part: string) =>
    encoded(String(path[part] ?? "")),
  );
  const address = pageAddress(filled);
  for (const [field, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) address.searchParams.set(field, String(value));
  }
  return address;
}

/** Return an address below the path that the page is served under. */
export function pageAddress(path: string): URL {
  return new URL(path.replace(/^\//, ""), document.baseURI);
}

/** Return a key for a request that is to be done once. It needs no secure context. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function again<T>(attempt: () => Promise<T>) {
  return (error: unknown): Promise<T> => {
    if (error instanceof ApiError && error.code === NETWORK_FAILURE) return attempt();
    throw error;
  };
}

/** A path of a node holds slashes; they stay. */
function encoded(value: string): string {
  return value.split("/").map(encodeURIComponent).join("/");
}

async function guarded<T>(action: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (signal?.aborted) throw error;
    const message = "The service does not answer. Check that it runs and that you are online.";
    throw new ApiError(NETWORK_FAILURE, message, 0);
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await guarded(() => response.text());
  try {
    const problem: Problem = readJson(text);
    if (typeof problem.code === "string") {
      return new ApiError(problem.code, problem.detail, response.status, problem);
    }
  } catch {
    // a proxy answered, not the service
  }
  const message = `The service answered ${response.status} ${response.statusText}`.trim();
  return new ApiError("unexpected-answer", `${message}.`, response.status);
}
