import { useNavigate } from "react-router";
import type { ExecutionSummary } from "@/api/types";
import { comparePath, type Ticks } from "@/screens/compare/ticks";
import { useShortcuts } from "@/ui/shortcuts";
import { useRowFocus } from "@/ui/useRowFocus";

interface RunKeys {
  executions: readonly ExecutionSummary[];
  ticks: Ticks;
  toggle: (id: string) => void;
}

/** J and K move the focus from run to run, X ticks the one it is in, C compares; Enter is the link's own. */
export function useRunKeys({ executions, ticks, toggle }: RunKeys) {
  const { focused, move, rememberLink } = useRowFocus(executions.map((run) => run.execution_id));
  const navigate = useNavigate();
  const tick = () => {
    const id = focused();
    if (id !== undefined) toggle(id);
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
  return { rememberLink };
}
