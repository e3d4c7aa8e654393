import { useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { useAnsweredRequests, useRequests } from "@/api/queries";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { Icon } from "@/ui/icons";
import { Skeleton } from "@/ui/Skeleton";
import { useBreakpoint } from "@/ui/useMedia";
import { AnsweredDetail } from "./AnsweredDetail";
import styles from "./ApprovalsScreen.module.css";
import { InboxHeader } from "./InboxHeader";
import { TAB } from "./inboxTab";
import { RequestList } from "./RequestList";
import { keyOf } from "./requestWords";
import { fits, useDigests } from "./useInbox";
import { useMove } from "./useMove";

/** What was answered in all runs, the newest answer first. */
export function AnsweredInbox() {
  const [parameters, setParameters] = useSearchParams();
  const [filter, setFilter] = useState("");
  const query = useAnsweredRequests();
  const waiting = useRequests().data?.pages[0]?.total;
  const digests = useDigests();
  const row = useRef<HTMLAnchorElement>(null);
  const place = useRef<HTMLElement>(null);
  const isPhone = useBreakpoint("phone");
  const all = query.data?.pages.flatMap((page) => page.requests) ?? [];
  const list = all.filter((request) => fits(request, filter));
  const inAddress = parameters.get("request");
  const request = inAddress === null ? list[0] : all.find((each) => keyOf(each) === inAddress);
  const key = request ? keyOf(request) : inAddress;
  const choose = (next: string | null) =>
    setParameters(next === null ? { [TAB]: "answered" } : { [TAB]: "answered", request: next }, {
      replace: inAddress !== null,
    });
  const move = useMove({ list, key, choose }, row);
  return (
    <div className={styles.screen} data-chosen={inAddress !== null}>
      <nav className={styles.inbox} aria-label="Requests">
        <InboxHeader tab="answered" waiting={waiting} filter={filter} onFilter={setFilter} />
        <AnsweredState query={query} isFiltered={list.length < all.length && list.length === 0} />
        <RequestList
          tab="answered"
          requests={list}
          digests={digests}
          chosen={key}
          chosenRow={row}
          onOpen={() => requestAnimationFrame(() => place.current?.focus())}
        />
        {query.hasNextPage && (
          <div className={styles.more}>
            <Button onClick={() => void query.fetchNextPage()}>Show more</Button>
          </div>
        )}
      </nav>
      {request?.answered ? (
        <AnsweredDetail
          key={key}
          request={request}
          answered={request.answered}
          place={place}
          isPage={isPhone}
          onMove={move}
        />
      ) : (
        <section className={styles.nothing} aria-label="Request">
          {query.isSuccess && (
            <EmptyState
              sign={<Icon name="approval" />}
              title={all.length === 0 ? "Nothing was answered yet." : "Not among these answers."}
              action={inAddress && <Button onClick={() => choose(null)}>Show the newest</Button>}
            >
              {all.length === 0
                ? "Answers stay here with their notes, as long as their runs are kept."
                : "The answer may be further down the list, or its run was deleted."}
            </EmptyState>
          )}
        </section>
      )}
    </div>
  );
}

function AnsweredState(props: {
  query: ReturnType<typeof useAnsweredRequests>;
  isFiltered: boolean;
}) {
  const { query, isFiltered } = props;
  if (query.isSuccess && !isFiltered) return null;
  return (
    <div className={styles.state}>
      {query.isPending && <Skeleton label="Loading the answers" lines={4} />}
      {query.error && <ErrorNote error={query.error} />}
      {query.error && (
        <Button small onClick={() => void query.refetch()}>
          Try again
        </Button>
      )}
      {isFiltered && <p>No answer that is shown fits the filter.</p>}
    </div>
  );
}
