/** The page of the demo: the playground with the demo's configuration, and both clusters as they change. */

import type { Config } from '../../config/types.ts';
import { DemoFeed, type DemoFeedOptions } from './demo-feed.ts';
import { startPageServer, type PageServer } from './page-server.ts';
import { PlaygroundSession } from './playground-session.ts';
import { startState } from './start-state.ts';

export interface DemoPageOptions extends DemoFeedOptions {
  readonly port: number;
  readonly config: Config;
  /** Objects that the demo's patches match, as YAML. */
  readonly sample: string;
}

export interface DemoPage extends PageServer {
  readonly feed: DemoFeed;
}

export async function startDemoPage(options: DemoPageOptions): Promise<DemoPage> {
  await using undo = new AsyncDisposableStack();
  const closing = new AbortController();
  undo.defer(() => closing.abort());
  const session = undo.use(new PlaygroundSession(options.config));
  const feed = new DemoFeed(options, closing.signal);
  const { url } = undo.use(
    await startPageServer({
      port: options.port,
      calls: {
        '/api/run': (body) => session.run(body),
        '/api/start': async () => startState(options.config, options.sample),
        '/api/demo/save': feed.save,
      },
      feeds: { '/api/demo/feed': feed.feed },
    }),
  );
  const parts = undo.move();
  return { url, feed, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}
