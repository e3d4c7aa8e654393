import type { ReactNode } from "react";
import { ErrorNote } from "@/screens/ErrorNote";
import styles from "@/screens/ListPage.module.css";
import { Button } from "@/ui/Button";
import { Skeleton } from "@/ui/Skeleton";

type ListPageProps = {
  title: string;
  /** How many there are, in words. */
  total?: ReactNode;
  /** The buttons beside the title. */
  actions: ReactNode;
  /** What narrows the list; the last one is the text that is searched. Null where there is nothing to narrow. */
  filters: ReactNode;
  query: ListQuery;
  /** What is shown in place of an empty list. */
  empty: ReactNode;
  /** The rows; null where there are none. */
  children: ReactNode;
  /** What stays below the list. */
  dock?: ReactNode;
};

/** A query of a list that is read page by page. */
type ListQuery = {
  data: unknown;
  error: Error | null;
  isPending: boolean;
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
};

/** A page that is one list: its title, its filters, and its rows with a button for more of them. */
export function ListPage({ title, total, query, ...props }: ListPageProps) {
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <div className={styles.title}>
          <h1>{title}</h1>
          {total && <span className={styles.total}>{total}</span>}
        </div>
        <div className={styles.actions}>{props.actions}</div>
      </header>
      {props.filters && (
        <search className={styles.filter} aria-label="Filter">
          {props.filters}
        </search>
      )}
      <div className={styles.list}>
        {query.error && <ErrorNote error={query.error} />}
        {query.isPending && <Skeleton label={`Loading the ${title.toLowerCase()}`} lines={6} />}
        {props.children}
        {query.data !== undefined && !props.children && (
          <div className={styles.empty}>{props.empty}</div>
        )}
        {query.hasNextPage && (
          <div className={styles.more}>
            <Button
              onClick={() => void query.fetchNextPage()}
              disabledReason={query.isFetchingNextPage ? "Loading" : undefined}
            >
              Show more
            </Button>
          </div>
        )}
      </div>
      {props.dock}
    </div>
  );
}
