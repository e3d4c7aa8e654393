import { useRef } from "react";
import { Link, useSearchParams } from "react-router";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { EmptyState } from "@/ui/EmptyState";
import { formatAmount } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { Skeleton } from "@/ui/Skeleton";
import { useBreakpoint } from "@/ui/useMedia";
import { AnsweredInbox } from "./AnsweredInbox";
import styles from "./ApprovalsScreen.module.css";
import { InboxHeader } from "./InboxHeader";
import { TAB } from "./inboxTab";
import { RequestDetail } from "./RequestDetail";
import { RequestList } from "./RequestList";
import { useDigests, useInbox } from "./useInbox";
import { useMove } from "./useMove";

/** What people are asked, in all runs: what waits, and what was answered. */
export function ApprovalsScreen() {
  usePageTitle("Approvals");
  const [parameters] = useSearchParams();
  return parameters.get(TAB) === "answered" ? <AnsweredInbox /> : <WaitingInbox />;
}

function WaitingInbox() {
  const inbox = useInbox();
  const digests = useDigests();
  const row = useRef<HTMLAnchorElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const place = useRef<HTMLElement>(null);
  const isPhone = useBreakpoint("phone");
  const { list, key, request, choose } = inbox;
  const move = useMove(inbox, row);
  const onAnswered = (answered: string) => {
    inbox.markAnswered(answered);
    heading.current?.focus();
  };
  return (
    <div className={styles.screen} data-chosen={inbox.isChosen}>
      <nav className={styles.inbox} aria-label="Requests">
        <InboxHeader
          tab="waiting"
          waiting={inbox.open.length}
          filter={inbox.filter}
          onFilter={inbox.setFilter}
          heading={heading}
        />
        <ListState inbox={inbox} />
        <RequestList
          requests={list}
          digests={digests}
          chosen={key}
          chosenRow={row}
          onOpen={() => requestAnimationFrame(() => place.current?.focus())}
        />
        {inbox.query.hasNextPage && (
          <div className={styles.more}>
            <Button onClick={() => void inbox.query.fetchNextPage()}>Show more</Button>
          </div>
        )}
      </nav>
      {request ? (
        <RequestDetail
          key={key}
          request={request}
          digest={digests.get(request.execution_id)}
          isOpen={inbox.isOpen}
          place={place}
          isPage={isPhone}
          onAnswered={onAnswered}
          onMove={move}
        />
      ) : (
        <Nothing inbox={inbox} onBack={() => choose(null)} />
      )}
    </div>
  );
}

type Inbox = ReturnType<typeof useInbox>;

function ListState({ inbox: { query, list, open, filter, setFilter } }: { inbox: Inbox }) {
  if (query.isPending) {
    return (
      <div className={styles.state}>
        <Skeleton label="Loading the requests" lines={4} />
      </div>
    );
  }
  if (query.error) {
    return (
      <div className={styles.state}>
        <ErrorNote error={query.error} />
        <Button small onClick={() => void query.refetch()}>
          Try again
        </Button>
      </div>
    );
  }
  if (open.length > 0 && list.length === 0) {
    return (
      <div className={styles.state}>
        <EmptyState
          title="No request fits."
          action={<Button onClick={() => setFilter("")}>Clear filter</Button>}
        >
          {formatAmount(open.length, "request waits", "requests wait")}; “{filter}” hides them all.
        </EmptyState>
      </div>
    );
  }
  return null;
}

/** Beside the list where no request is shown. */
function Nothing({ inbox, onBack }: { inbox: Inbox; onBack: () => void }) {
  if (inbox.query.isPending || inbox.query.error) return <section className={styles.nothing} />;
  if (inbox.key === null || inbox.open.length === 0) {
    return (
      <section className={styles.nothing} aria-label="Request">
        <EmptyState sign={<Icon name="approval" />} title="Nothing waits for you.">
          A step that needs an answer stops here and asks. Other steps go on meanwhile.
        </EmptyState>
      </section>
    );
  }
  const executionId = inbox.key.split("/")[0];
  return (
    <section className={styles.nothing} aria-label="Request">
      <Note>
        This request is not open. It was answered, or its run has ended.{" "}
        <Link to={`/runs/${executionId}`}>Open the run</Link>{" "}
        <Link to={`?${TAB}=answered&request=${encodeURIComponent(inbox.key)}`}>
          Show the answer
        </Link>{" "}
        <Button small onClick={onBack}>
          Show what waits
        </Button>
      </Note>
    </section>
  );
}
