import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { useStore } from "zustand";
import type { ConnectionState } from "@/stream/connection";
import type { RunState } from "@/stream/runState";
import { type FollowedRun, followRun, type RunStoreState } from "@/stream/runStore";

const RunContext = createContext<FollowedRun | null>(null);

/** Follow a run, and give its state to everything inside; `waiting` is shown for a moment before. */
export function RunProvider(props: {
  executionId: string;
  waiting?: ReactNode;
  children: ReactNode;
}) {
  const { executionId, waiting = null, children } = props;
  const [followed, setFollowed] = useState<FollowedRun | null>(null);
  useEffect(() => {
    const run = followRun(executionId);
    setFollowed(run);
    return () => {
      run.close();
      setFollowed(null);
    };
  }, [executionId]);
  if (followed === null) return waiting;
  return <RunContext value={followed}>{children}</RunContext>;
}

/** Select from the run; the component renders only when the selected value changes. */
export function useRunStore<Selected>(select: (state: RunStoreState) => Selected): Selected {
  return useStore(useFollowed().store, select);
}

export function useRun<Selected>(select: (run: RunState) => Selected): Selected {
  return useRunStore((state) => select(state.run));
}

/** The whole run, some times a second: for what is computed from all of its steps. */
export function useRunOverview(): RunState {
  return useRunStore((state) => state.overview);
}

/** How the page is connected, and a function that connects it again at once. */
export function useRunConnection(): { connection: ConnectionState; retry: () => void } {
  const { retry } = useFollowed();
  return { connection: useRunStore((state) => state.connection), retry };
}

function useFollowed(): FollowedRun {
  const followed = useContext(RunContext);
  if (followed === null) throw new Error("a run is used outside of RunProvider");
  return followed;
}
