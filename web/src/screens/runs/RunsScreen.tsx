import { useState } from "react";
import { useSearchParams } from "react-router";
import { useExecutions } from "@/api/queries";
import type { ExecutionSummary } from "@/api/types";
import { CompareDock } from "@/screens/compare/CompareDock";
import { readTicks, type Ticks, toggleTick, withTicks } from "@/screens/compare/ticks";
import { ListPage } from "@/screens/ListPage";
import { DeleteRunDialog } from "@/screens/runs/DeleteRunDialog";
import { RunFilterFields } from "@/screens/runs/RunFilterFields";
import { RunsEmpty } from "@/screens/runs/RunsEmpty";
import { RunTable } from "@/screens/runs/RunTable";
import {
  apiFilters,
  hasFilters,
  readFilters,
  withFilters,
  withoutFilters,
} from "@/screens/runs/runFilters";
import { useRunKeys } from "@/screens/runs/useRunKeys";
import { ButtonLink } from "@/ui/Button";
import { formatAmount } from "@/ui/format";
import { usePageTitle } from "@/ui/pageTitle";

/** All runs that are kept: to find one again, and to compare two. */
export function RunsScreen() {
  usePageTitle("Runs");
  const [params, setParams] = useSearchParams();
  const [deleted, setDeleted] = useState<ExecutionSummary | null>(null);
  const filters = readFilters(params);
  // An address changes later than a checkbox may: it only remembers the ticks.
  const [ticks, setOwnTicks] = useState(() => readTicks(params));
  const runs = useExecutions({ ...apiFilters(filters, new Date()), counts: true });
  const counts = runs.data?.pages[0]?.counts ?? undefined;
  const executions = runs.data?.pages.flatMap((page) => page.executions) ?? [];
  const setTicks = (next: Ticks) => {
    setOwnTicks(next);
    setParams((now) => withTicks(now, next), { replace: true, preventScrollReset: true });
  };
  const toggle = (id: string) => setTicks(toggleTick(ticks, id));
  const keys = useRunKeys({ executions, ticks, toggle });
  return (
    <ListPage
      title="Runs"
      total={counts && counts.total > 0 && formatAmount(counts.total, "run")}
      actions={
        <ButtonLink icon="add" to="/">
          New goal
        </ButtonLink>
      }
      filters={
        <RunFilterFields
          filters={filters}
          counts={counts}
          onChange={(changed) => setParams((now) => withFilters(now, changed), { replace: true })}
        />
      }
      query={runs}
      empty={
        <RunsEmpty
          isFiltered={hasFilters(filters)}
          others={counts?.total ?? 0}
          onClear={() => setParams((now) => withoutFilters(now), { replace: true })}
        />
      }
      dock={
        <>
          <CompareDock ticks={ticks} onChange={setTicks} />
          <DeleteRunDialog
            run={deleted}
            onClose={() => setDeleted(null)}
            onDeleted={(id) => setTicks(ticks.filter((each) => each !== id))}
          />
        </>
      }
    >
      {executions.length > 0 && (
        <RunTable
          executions={executions}
          ticks={ticks}
          onTick={toggle}
          onDelete={setDeleted}
          rememberLink={keys.rememberLink}
        />
      )}
    </ListPage>
  );
}
