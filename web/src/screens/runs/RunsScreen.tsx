import { useState } from "react";
import { useSearchParams } from "react-router";
import { errorText } from "@/api/errorText";
import { useExecutions } from "@/api/queries";
import type { ExecutionSummary } from "@/api/types";
import { CompareDock } from "@/screens/compare/CompareDock";
import { readTicks, type Ticks, toggleTick, withTicks } from "@/screens/compare/ticks";
import { DeleteRunDialog } from "@/screens/runs/DeleteRunDialog";
import { FilterRow } from "@/screens/runs/FilterRow";
import { RunsEmpty } from "@/screens/runs/RunsEmpty";
import styles from "@/screens/runs/RunsScreen.module.css";
import { RunTable } from "@/screens/runs/RunTable";
import {
  apiFilters,
  hasFilters,
  readFilters,
  withFilters,
  withoutFilters,
} from "@/screens/runs/runFilters";
import { useRunKeys } from "@/screens/runs/useRunKeys";
import { Button, ButtonLink } from "@/ui/Button";
import { formatAmount } from "@/ui/format";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { Skeleton } from "@/ui/Skeleton";

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
    <div className={styles.page}>
      <header className={styles.header}>
        <h1>Runs</h1>
        {counts && counts.total > 0 && (
          <span className={styles.total}>{formatAmount(counts.total, "run")}</span>
        )}
        <ButtonLink icon="add" to="/">
          New goal
        </ButtonLink>
      </header>
      <FilterRow
        filters={filters}
        counts={counts}
        onChange={(changed) => setParams((now) => withFilters(now, changed), { replace: true })}
      />
      <div className={styles.list}>
        {runs.error && <Note kind="error">{errorText(runs.error)}</Note>}
        {runs.isPending && <Skeleton label="Loading the runs" lines={6} />}
        {executions.length > 0 && (
          <RunTable
            executions={executions}
            ticks={ticks}
            onTick={toggle}
            onDelete={setDeleted}
            rememberLink={keys.rememberLink}
          />
        )}
        {runs.data && executions.length === 0 && (
          <div className={styles.empty}>
            <RunsEmpty
              isFiltered={hasFilters(filters)}
              others={counts?.total ?? 0}
              onClear={() => setParams((now) => withoutFilters(now), { replace: true })}
            />
          </div>
        )}
        {runs.hasNextPage && (
          <ShowMore isLoading={runs.isFetchingNextPage} onMore={runs.fetchNextPage} />
        )}
      </div>
      <CompareDock ticks={ticks} onChange={setTicks} />
      <DeleteRunDialog
        run={deleted}
        onClose={() => setDeleted(null)}
        onDeleted={(id) => setTicks(ticks.filter((each) => each !== id))}
      />
    </div>
  );
}

function ShowMore({ isLoading, onMore }: { isLoading: boolean; onMore: () => void }) {
  return (
    <div className={styles.more}>
      <Button onClick={() => onMore()} disabledReason={isLoading ? "Loading" : undefined}>
        Show more
      </Button>
    </div>
  );
}
