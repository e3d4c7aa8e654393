import { useState } from "react";
import { useSearchParams } from "react-router";
import { useExecutions } from "@/api/queries";
import type { ExecutionSummary } from "@/api/types";
import { CompareDock } from "@/screens/compare/CompareDock";
import { readTicks, type Ticks, toggleTick, withTicks } from "@/screens/compare/ticks";
import { ListPage } from "@/screens/ListPage";
import { BulkBar } from "@/screens/runs/BulkBar";
import { DeleteRunDialog } from "@/screens/runs/DeleteRunDialog";
import { LabelDialog } from "@/screens/runs/LabelDialog";
import { RunFilterFields } from "@/screens/runs/RunFilterFields";
import { RunsEmpty } from "@/screens/runs/RunsEmpty";
import { RunTable } from "@/screens/runs/RunTable";
import {
  apiFilters,
  hasFilters,
  type RunFilters,
  readFilters,
  withFilters,
  withoutFilters,
} from "@/screens/runs/runFilters";
import { useRunKeys } from "@/screens/runs/useRunKeys";
import { Button, ButtonLink } from "@/ui/Button";
import { formatAmount, formatCount } from "@/ui/format";
import { usePageTitle } from "@/ui/pageTitle";

/** All runs that are kept: to find one again, and to compare two. */
export function RunsScreen() {
  usePageTitle("Runs");
  const [params, setParams] = useSearchParams();
  const [deleted, setDeleted] = useState<ExecutionSummary | null>(null);
  const [labelled, setLabelled] = useState<ExecutionSummary | null>(null);
  const [selected, setSelected] = useState<ReadonlySet<string> | null>(null);
  const filters = readFilters(params);
  // An address changes later than a checkbox may: it only remembers the ticks.
  const [ticks, setOwnTicks] = useState(() => readTicks(params));
  const runs = useExecutions({ ...apiFilters(filters, new Date()), counts: true });
  const counts = runs.data?.pages[0]?.counts ?? undefined;
  const executions = runs.data?.pages.flatMap((page) => page.executions) ?? [];
  const isNone = runs.isSuccess && executions.length === 0 && !hasFilters(filters);
  const setTicks = (next: Ticks) => {
    setOwnTicks(next);
    setParams((now) => withTicks(now, next), { replace: true, preventScrollReset: true });
  };
  const toggle = (id: string) => setTicks(toggleTick(ticks, id));
  const select = (id: string) =>
    setSelected((now) => (now?.has(id) ? without(now, id) : new Set([...(now ?? []), id])));
  const change = (changed: Partial<RunFilters>) =>
    setParams((now) => withFilters(now, changed), { replace: true });
  const keys = useRunKeys({ executions, ticks, toggle });
  return (
    <ListPage
      title="Runs"
      total={
        counts &&
        counts.total > 0 &&
        (counts.at_least ? `${formatCount(counts.total)}+ runs` : formatAmount(counts.total, "run"))
      }
      actions={
        <>
          <ButtonLink to="/spend">Spend</ButtonLink>
          {!isNone && (
            <>
              <Button
                aria-pressed={selected !== null}
                onClick={() => setSelected(selected === null ? new Set() : null)}
              >
                Select
              </Button>
              <ButtonLink icon="add" to="/">
                New goal
              </ButtonLink>
            </>
          )}
        </>
      }
      filters={
        isNone ? null : <RunFilterFields filters={filters} counts={counts} onChange={change} />
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
          {selected === null ? (
            <CompareDock ticks={ticks} onChange={setTicks} />
          ) : (
            <BulkBar
              runs={executions.filter((run) => selected.has(run.execution_id))}
              onAll={() => setSelected(new Set(executions.map((run) => run.execution_id)))}
              onDone={(left) => setSelected(new Set(left))}
              onClose={() => setSelected(null)}
            />
          )}
          <LabelDialog run={labelled} onClose={() => setLabelled(null)} />
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
          selected={selected}
          onSelect={select}
          sort={filters}
          onSort={change}
          onLabel={setLabelled}
          onDelete={setDeleted}
          rememberLink={keys.rememberLink}
        />
      )}
    </ListPage>
  );
}

function without(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...ids].filter((each) => each !== id));
}
