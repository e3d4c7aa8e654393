import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useState } from "react";
import { createBrowserRouter, RouterProvider } from "react-router";
import { isUnauthorized } from "@/api/http";
import { retryQuery } from "@/api/queries";
import { useSession } from "@/api/session";
import { ROUTES } from "@/app/routes";
import { TooltipProvider } from "@/ui/Tooltip";

/** A 401 of any request shows the login page in place of the page. */
function checkLogin(error: Error): void {
  if (isUnauthorized(error)) useSession.setState({ needsLogin: true });
}

function createQueryClient(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({ onError: checkLogin }),
    mutationCache: new MutationCache({ onError: checkLogin }),
    defaultOptions: { queries: { staleTime: 10_000, retry: retryQuery } },
  });
}

/** The path that the page is served under, from `<base>`. */
function createRouter() {
  return createBrowserRouter(ROUTES, { basename: new URL(document.baseURI).pathname });
}

export function App() {
  const [queries] = useState(createQueryClient);
  const [router] = useState(createRouter);
  return (
    <QueryClientProvider client={queries}>
      <TooltipProvider delayDuration={500}>
        <RouterProvider router={router} />
      </TooltipProvider>
    </QueryClientProvider>
  );
}
