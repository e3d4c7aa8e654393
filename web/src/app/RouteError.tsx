import { isRouteErrorResponse, useRouteError } from "react-router";
import { errorText } from "@/api/errorText";
import styles from "@/app/Layout.module.css";
import { NotFound } from "@/app/NotFound";
import { Button } from "@/ui/Button";
import { usePageTitle } from "@/ui/pageTitle";

/** The page after an error: the API's message and hint, or the message of the exception. */
export function RouteError() {
  const error = useRouteError();
  if (isRouteErrorResponse(error) && error.status === 404) return <NotFound />;
  return <Failure error={error} />;
}

function Failure({ error }: { error: unknown }) {
  usePageTitle("Error");
  return (
    <div className={styles.message} role="alert">
      <h1>This page cannot be shown</h1>
      <p>{errorText(error)}</p>
      <Button kind="primary" onClick={() => window.location.reload()}>
        Load it again
      </Button>
    </div>
  );
}
