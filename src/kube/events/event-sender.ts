/** Writes the Event of a series: creates it, or updates the count of the one that is stored. */

import { EVENTS } from '../object.ts';
import { isNotFound } from '../status-error.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { eventName, needsNewEvent, newEvent, seriesField, type EventSeries } from './event-series.ts';
import type { ClusterClient } from '../types.ts';

const SEND_TIMEOUT_MS = 10_000;

export interface EventSenderOptions {
  readonly client: Pick<ClusterClient, 'create' | 'patch'>;
  /** A qualified name: `endpoint-syncer/controller`. */
  readonly reportingController: string;
  /** This process, e.g. the host name; at most 128 characters are kept. */
  readonly reportingInstance: string;
  readonly clock: Clock;
  readonly random: Random;
}

export class EventSender {
  readonly #options: EventSenderOptions;

  constructor(options: EventSenderOptions) {
    this.#options = options;
  }

  async send(series: EventSeries): Promise<void> {
    const { stored } = series;
    if (stored !== undefined && !needsNewEvent(series, this.#options.clock.now())) {
      if (stored.count === series.count) return;
      try {
        await this.#patch(series, stored.name);
        return;
      } catch (error) {
        // Events are deleted after an hour: the series continues in a new one.
        if (!isNotFound(error)) throw error;
      }
    }
    await this.#create(series);
  }

  async #patch(series: EventSeries, name: string): Promise<void> {
    const { count } = series;
    const key = { namespace: series.namespace, name };
    const body = { series: seriesField(series) };
    await this.#options.client.patch(EVENTS, key, { type: 'merge', body }, { timeoutMs: SEND_TIMEOUT_MS });
    series.stored = { name, note: series.stored?.note ?? series.note, count };
  }

  async #create(series: EventSeries): Promise<void> {
    const { client, clock, random, reportingController, reportingInstance } = this.#options;
    // A new note starts a new Event with its own count.
    if (series.stored !== undefined && series.stored.note !== series.note) {
      series.count = Math.max(1, series.count - series.stored.count);
    }
    const { note, count } = series;
    const name = eventName(series, clock.now(), random());
    const reporting = { controller: reportingController, instance: reportingInstance.slice(0, 128) };
    await client.create(EVENTS, newEvent(series, name, reporting), { timeoutMs: SEND_TIMEOUT_MS });
    series.stored = { name, note, count };
    series.createdMs.push(clock.now());
  }
}
