import { useCallback } from "react";
import { useSearchParams } from "react-router";
import type { NodeState, RunState } from "@/stream/runState";
import { graphsAt, type PlanMoment } from "./planMoments";

/** The step that the address names, and a function that changes it. */
export function useSelectedStep(
  run: RunState,
): [NodeState | undefined, (path: string | null) => void] {
  const [path, select] = useParameter("step");
  return [path === null ? undefined : run.nodes.get(path), select];
}

/** The moment of the plan that the address names, null for now, and a function that changes it. */
export function usePlanMoment(run: RunState): [PlanMoment, (moment: PlanMoment) => void] {
  const [named, name] = useParameter("change");
  const moment = named === null ? Number.NaN : Number(named);
  const show = useCallback((next: PlanMoment) => name(next === null ? null : String(next)), [name]);
  return [graphsAt(run, moment) === null ? null : moment, show];
}

/** Whether the address asks for the result alone, and a function that changes it. */
export function useReading(): [boolean, (isReading: boolean) => void] {
  const [view, setView] = useParameter("view", false);
  return [view === "result", (isReading) => setView(isReading ? "result" : null)];
}

/** A parameter of the address and a function that sets it, or takes it away; `replace` leaves no way back. */
function useParameter(name: string, replace = true) {
  const [search, setSearch] = useSearchParams();
  const set = useCallback(
    (value: string | null) =>
      setSearch(
        (current) => {
          const changed = new URLSearchParams(current);
          if (value === null) changed.delete(name);
          else changed.set(name, value);
          return changed;
        },
        { replace },
      ),
    [name, replace, setSearch],
  );
  return [search.get(name), set] as const;
}
