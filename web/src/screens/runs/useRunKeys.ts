import { useRef } from "react";
import { useNavigate } from "react-router";
import type { ExecutionSummary } from "@/api/types";
import { comparePath, type Ticks } from "@/screens/compare/ticks";
import { useShortcuts } from "@/ui/shortcuts";

interface RunKeys {
  executions: readonly ExecutionSummary[];
  ticks: Ticks;
  toggle: (id: string) => void;
}

/** J and K move the focus from run to run, X ticks the one it is in, C compares; Enter is the link's own. */
export function useRunKeys({ executions, ticks, toggle }: RunKeys) {
  const links = useRef(new Map<string, HTMLAnchorElement>());
  const last = useRef<string | null>(null);
  const navigate = useNavigate();
  const indexOf = () => {
    const focused = executions.findIndex(({ execution_id }) =>
      links.current.get(execution_id)?.closest("tr")?.contains(document.activeElement),
    );
    if (focused >= 0) return focused;
    return executions.findIndex(({ execution_id }) => execution_id === last.current);
  };
  const move = (step: number) => {
    const index = Math.min(Math.max(indexOf() + step, 0), executions.length - 1);
    const run = executions[index];
    if (!run) return;
    last.current = run.execution_id;
    links.current.get(run.execution_id)?.focus();
  };
  const tick = () => {
    const run = executions[indexOf()];
    if (run) toggle(run.execution_id);
  };
  useShortcuts("Runs", [
    { keys: "j", does: "Next run", run: () => move(1) },
    { keys: "k", does: "Previous run", run: () => move(-1) },
    { keys: "x", does: "Tick for a comparison", run: tick },
    {
      keys: "c",
      does: "Compare what is ticked",
      run: () => ticks.length > 0 && navigate(comparePath(ticks)),
    },
  ]);
  const rememberLink = (id: string, link: HTMLAnchorElement | null) => {
    if (link) links.current.set(id, link);
    else links.current.delete(id);
  };
  return { rememberLink };
}
