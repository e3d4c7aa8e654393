import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { queryKeys } from "@/api/queryKeys";
import { useRunConnection } from "@/stream/RunProvider";
import { Button } from "@/ui/Button";
import { Connection } from "@/ui/Connection";
import { formatTime } from "@/ui/format";

/** Says when the run that is shown may not be the run as it is now. */
export function ConnectionNote() {
  const { connection, retry } = useRunConnection();
  const client = useQueryClient();
  const isBroken = connection.kind === "reconnecting" || connection.kind === "lost";
  // The bar would say for some seconds that the service answers.
  useEffect(() => {
    if (isBroken) void client.invalidateQueries({ queryKey: queryKeys.readiness });
  }, [isBroken, client]);
  switch (connection.kind) {
    case "reconnecting":
      return <Connection state="reconnecting" asOf={`as of event ${connection.seq}`} />;
    case "lost":
      return (
        <>
          <Connection state="lost" asOf={`as of ${formatTime(new Date(connection.since), true)}`} />
          <Button small onClick={retry}>
            Connect again
          </Button>
        </>
      );
    default:
      return null;
  }
}
