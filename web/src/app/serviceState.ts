import { useQuery } from "@tanstack/react-query";
import { ApiError, call, NETWORK_FAILURE } from "@/api/http";
import { queryKeys } from "@/api/queryKeys";

const POLL_MS = 10_000;
const POLL_WHILE_LOST_MS = 3_000;

interface Readiness {
  /** Why the service refuses new work: it starts, it stops, its disk is full. */
  refusal: ApiError | null;
}

async function askReadiness(signal: AbortSignal): Promise<Readiness> {
  try {
    await call("getReadiness", { signal });
    return { refusal: null };
  } catch (error) {
    if (error instanceof ApiError && error.code !== NETWORK_FAILURE) return { refusal: error };
    throw error;
  }
}

interface ServiceState extends Readiness {
  isReached: boolean;
  /** Failed attempts since the last answer. */
  failures: number;
  lastAnswer: Date | null;
}

/** Whether the service can be reached and accepts work; polled every few seconds. */
export function useServiceState(): ServiceState {
  const { data, error, dataUpdatedAt, failureCount, errorUpdateCount } = useQuery({
    queryKey: queryKeys.readiness,
    queryFn: ({ signal }) => askReadiness(signal),
    refetchInterval: (query) => (query.state.error ? POLL_WHILE_LOST_MS : POLL_MS),
    retry: false,
  });
  return {
    refusal: data?.refusal ?? null,
    isReached: !error,
    failures: Math.max(failureCount, errorUpdateCount),
    lastAnswer: dataUpdatedAt ? new Date(dataUpdatedAt) : null,
  };
}
